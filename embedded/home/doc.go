// Package home is the data directory of a ledger (SPEC 20): where everything
// lies, who may open it, its configuration, its keys and its table of users.
//
//	DIR/ledger.json      the mark that this is a ledger, written last by init
//	    lock             held by the one process that runs on DIR
//	    effectd.yaml     limits and defaults       ┐ of the configuration
//	    policy.cedar     the owner's policy        │ directory, which is DIR
//	    operations/      the contracts             │ unless another is named
//	    secrets/         what contracts may read   ┘
//	    users.yaml       the table of users
//	    keys/            their nkey seeds
//	    nats/ projection/ anchor/ spool/
//
// Policy, operations and users are proposals: they decide nothing until serve
// has loaded them into the log.
//
// Invariants:
//
//	H1  A directory is a ledger from the moment ledger.json is durable. Before
//	    that nothing was ever served from it, and init may be run again.
//	H2  Init destroys nothing that an unfinished init has not made, and goes on with
//	    the identity, keys and files of that one.
//	H3  One process at a time runs on a directory.
//	H4  A file is replaced whole or not at all, and is durable when the call returns.
//	H5  Secrets are readable by the owner alone, and appear in no message.
//	H6  The key of a removed user is never given to a user again.
package home
