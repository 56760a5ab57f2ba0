package home

// ConfigTemplate is the effectd.yaml that init writes: every key, commented out,
// with its default.
const ConfigTemplate = `# Configuration of effectd. Every key is optional; commented out are the defaults.

# What this node is called in the log; default: the host's name.
# node: node

# The bounds of the ledger (recorded in the log when a writer takes over).
# limits:
#   profile: local
#   effect_records: 10000          # effects that are kept
#   live_bytes: 64MiB              # of their encoded records
#   record_bytes: 64KiB            # of one record with its envelope
#   log_bytes: 1GiB                # of the whole log
#   prepared_per_principal: 1000   # effects of one principal that wait
#   requests_in_flight: 1024       # of one principal

# How long a permit lasts from its issue, at most.
# permit_ttl: 5m

# How long running sends may take when the node stops.
# shutdown_budget: 30s

# How often the whole log is read and checked in the background.
# scrub_every: 24h

# Below this much free disk no new effect is taken.
# disk_reserve: 256MiB

# Results that wait until the ledger can take them.
# spool_bytes: 64MiB

# The other streams.
# feed_bytes: 1GiB
# denial_bytes: 64MiB
# request_bytes: 256MiB
# payload_bytes: 1GiB

# TLS for users. PEM files, relative to this directory; read again on SIGHUP.
# tls:
#   cert:                          # of the embedded server, with its chain
#   key:
#   ca:                            # what the node trusts of an external server (default: the system's)

# Copies of the log that an external server must keep.
# replicas: 3
`
