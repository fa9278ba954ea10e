"""Where the values of a reference profile come from: a file, a range of topic `requests`, or the replayed trace."""
