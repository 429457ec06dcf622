"""Web archives, and the text of HTML pages.

Records are delimited by their lengths before fastwarc reads them one by one: on its own, it silently accepts truncated
records, does not read ARC, and loses everything after a wrong length. So damage is a bad row like any other, members
are copied without being parsed, and records are parsed on all threads.

HTML is read by separate processes, since resiliparse holds the interpreter lock; a page that crashes or blocks its
reader affects no other page. The reader is not a field of the recipe, since it prepares texts as users do before a run,
but it is part of the run's identity. With `--markup html`, reading pages is part of the recipe.
"""
