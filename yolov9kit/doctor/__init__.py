"""What is wrong with a data set: ``diagnose``. Reads only."""
