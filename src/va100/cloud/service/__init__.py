"""What the cloud does: synchronous operations on its records, each one transaction or more.

Nothing here knows HTTP, SQL or how a program is started: the edge calls in, the store and the
drivers are handed over.  Everything can be tested without a server or a loop.
"""
