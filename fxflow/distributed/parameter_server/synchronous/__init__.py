"""The synchronous plane: one program over all devices, collectives, no messages."""
