"""The common interface of inputs: pieces that can be read again, rejected rows, decompressed and spooled files.

Inputs that cannot be read by offset are stored in the run's directory: compressed lines are decompressed once and then
treated as a plain file; for tables and streams, the texts are spooled. A source yields jobs. Sequential work
(decompression, ends of CSV records, IPC messages) happens while jobs are yielded, the rest inside them, on any thread.
"""
