"""Messages between processes: one codec, and the carriers that move its bytes.

`codec` turns a message into bytes and back: it checks all of a description before it
allocates, and unpickles nothing. The carriers are `channel` (TCP and socket pairs) and
`zeromq` (many peers, connections that restore themselves, `keys`). `shared_memory`
moves large arrays between processes of one machine.
"""
