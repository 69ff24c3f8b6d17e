"""Parameters that cost no simulation: integrated out of every call, and put back into the posterior."""
