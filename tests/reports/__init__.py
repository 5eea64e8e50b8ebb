"""Reports of others' users, each as a small program with the value that is right."""
