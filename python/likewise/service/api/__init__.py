"""Operations of the service over HTTP."""
