"""Messages between processes: one codec, and the transports that move its bytes.

`codec` encodes and decodes messages. It validates a message's whole description before
it allocates memory, and never unpickles. The transports are `channel` (TCP and socket
pairs) and `zeromq` (many peers, automatic reconnection, `keys`). `shared_memory` moves
large arrays between processes of one machine.
"""
