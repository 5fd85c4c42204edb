"""The cloud's memory: tables, migrations, and units of work on SQLite or PostgreSQL.

SQLAlchemy is imported here and nowhere else.  What the rows mean is the service's matter.
"""
