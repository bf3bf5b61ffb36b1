"""A new folder from a data set: converted, split, merged, thinned out, repaired. The original is never touched."""
