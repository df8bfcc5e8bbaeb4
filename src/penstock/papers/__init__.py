"""The five documents, run again: tables, pictures and findings beside the published ones."""
