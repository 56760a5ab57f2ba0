// Package embedded is the composition root: it connects the log, the writer, the
// projection, the dispatcher and the reconciler to one node, on the NATS server in
// the process or on an external one.
//
//	                ┌────────────────────────── Node ───────────────────────────┐
//	users ══NATS══▶ │ answer conn ─▶ endpoints ─▶ ledger ─▶ ledger conn ─▶ EFFECTS │
//	                │                 ▲   reads                             │     │
//	                │                 └── projection ◀── tail ◀─────────────┤     │
//	                │  services ◀── dispatcher ◀── durable consumer ◀───────┘     │
//	                └─────────────────────────────────────────────────────────────┘
//
// Start checks before it trusts: the stream against its required configuration, the
// anchor, the projection's position, every entry since. What it cannot trust it
// serves for reading only.
//
// Invariants:
//
//	M1  One process per data directory, by a lock of its own.
//	M2  Only Init creates the streams; Start never does.
//	M3  No write and no dispatch on a log that is not trusted; reads go on.
//	M4  Every claim's position is fsynced in the anchor before the send.
//	M5  The spool is replayed, and claims of earlier lives are ended, before
//	    anything is dispatched.
//	M6  A stop ends the intake first, then the dispatcher, then the writer.
//	M7  A stop leaves the anchor at the end of the log.
//	M8  The owner's files are loaded whole or not at all, as far as they can be
//	    checked; what tightens comes before what widens.
package embedded
