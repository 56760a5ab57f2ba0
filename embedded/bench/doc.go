// Package bench measures the ledger on scratch directories, against the same
// pipeline without the law.
//
//	producers (the real client, TCP) ──▶ node with a service that answers at once   effects_per_s
//	producers (the real client, TCP) ──▶ bare: queue ▶ entry ▶ consumer ▶ claim     bare_per_s
//	                                           ▶ anchor ▶ result ▶ reply
//	one publisher ──▶ stream, expected last sequence, 1 KiB                         raw_publish_per_s
//
// Both sides have the same server, accounts, permissions, streams, subjects,
// requests, events, entries and replies, by the same code. The bare one decides
// nothing, digests nothing but the chain, keeps no state and projects nothing.
//
// Invariants:
//
//	B1  Only one side exists at a time, and each round begins with an empty one;
//	    rounds of both alternate, so that a machine that drifts favours neither.
//	B2  Everything that a round counts was checked: each effect settled, succeeded,
//	    sent once, and none left behind.
//	B3  Nothing stays on disk.
package bench
