// Package schema generates the JSON Schemas (2020-12) of everything that the
// ledger writes and speaks from the Go types that write and speak it, so that
// they cannot drift apart (SPEC 4).
//
//	events.Types() ─┐
//	requests        ├─▶ reflect ─▶ All(): "event.prepared", "request.effect.submit", "reply.effect", "entry", …
//	replies         ─┘
//
// Invariants:
//
//	S1  What is encoded is valid: every event, request and reply of ours passes
//	    its schema.
//	S2  Unknown members of an event, entry or request are invalid, as for every
//	    reader of ours. A reply may grow members.
package schema
