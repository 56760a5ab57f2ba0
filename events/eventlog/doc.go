// Package eventlog is the log of the ledger: one JetStream stream that holds
// one entry per message, and the same log in memory for tests. Both pass one
// conformance suite.
//
//	writer ──Append(entry at N+1)──▶ publish, expected last sequence N ──▶ EFFECTS
//	            │  ▲                                                         │
//	            │  └── no clear answer: look at N and N+1 ◀── direct get ────┤
//	            ▼                                                            │
//	     nil · conflict · full · unavailable · unknown                       │
//	                                                                         │
//	reader ◀── Read (direct get, from N for N+1) ◀── decode once, check chain ◀┤
//	reader ◀── Tail (Read while behind, then a consumer) ◀── same checks ◀────┤
//	dispatcher ◀── Deliveries (durable consumer, explicit ack) ◀─────────────┘
//
// Invariants:
//
//	L1  An entry is durable at exactly the sequence it names.
//	L2  Append returns nil only when the log holds these very bytes at that
//	    sequence: by an acknowledgement that is no duplicate and names stream and
//	    sequence, or by reading them there.
//	L3  Append returns ErrConflict only when another entry was read at that
//	    sequence; ErrFull and ErrUnavailable only when the entry is proven not
//	    stored and cannot be stored later by what was sent. A refusal that comes
//	    after an unanswered attempt proves nothing about that attempt.
//	L4  While an append is unresolved, nothing but the same bytes with the same
//	    expectation is published, across calls too.
//	L5  A reader refuses, with a Distrust that names the sequence, a gap, a
//	    missing or lost or deleted message, a broken chain, an entry that does
//	    not decode, names another sequence or belongs to another ledger. It never
//	    skips. A server that merely does not answer is not distrusted.
//	L6  Only Create makes the stream. A stream that is missing or weaker than
//	    required is distrusted, never made or changed.
//
// A connection that writes the log should be opened with
// nats.ReconnectBufSize(-1): what is published while the connection is down is
// then known not to have been sent, and nothing is flushed late. Without it the
// invariants hold, by L4, but more appends end as unknown.
package eventlog
