"""Archival: rows past their policy leave the tables for files, or for good.

What is archivable stands in `archivable.py`, in the order of a run: `select` (which
policy, which cutoff, which rows), `write` (a file, byte for byte the same for the
same rows), `apply_policies` (the handler: file, then one transaction that registers
the file and deletes exactly its rows), `expire` and `sweep` (old files; what no
policy speaks of). `verify` and `restore` are the way back.

What must stay true: a row is deleted only in the transaction that registers a file
which was read back and found equal. A crash before it leaves a file without a row,
which the next run writes again under the same name; a row without a file cannot arise.

Nobody imports this domain: it stands on top of the others.
"""
