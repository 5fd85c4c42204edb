"""The cloud over HTTP: routes, schemas, problems; FastAPI is imported here and in the console."""
