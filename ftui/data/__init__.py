"""Files to rows, cleaning, splits, duplicates and encoded examples."""
