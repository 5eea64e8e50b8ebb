"""What turns functions into functions: one file each."""
