"""What every input provides: pieces that can be read again, rejected rows, unpacked and spooled files.

Inputs that cannot be read by offset are stored in the run's directory: packed lines are unpacked once and then treated
as a plain file, and of tables and streams the texts are spooled. A source hands out jobs. Sequential work (unpacking,
finding ends of CSV records, IPC messages) happens while they are handed out, the rest inside them, on any thread.
"""
