"""What every input is: pieces that can be read again, rows that were refused, files unpacked or put aside."""
