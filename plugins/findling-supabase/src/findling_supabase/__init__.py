"""Supabase for findling: its pooler as a place, its users as callers."""
