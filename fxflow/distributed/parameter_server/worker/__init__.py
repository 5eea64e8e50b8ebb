"""A worker's end: what it says to the servers, and the step it makes."""
