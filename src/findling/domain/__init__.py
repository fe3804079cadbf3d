"""The contract: resources, queries, results, errors and ports. Imports nothing but the standard library."""
