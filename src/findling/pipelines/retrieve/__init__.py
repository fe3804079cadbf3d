"""From a query to fused candidates: plan, legs, fusion."""
