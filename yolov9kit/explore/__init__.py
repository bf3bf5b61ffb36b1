"""Looking into a data set: filters, numbers, small pictures."""
