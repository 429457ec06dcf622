"""One index on a server or on the nodes of a cluster: the protocol of docs/developers/cluster.md."""
