// Package natsserver runs the NATS server inside the process, and says who may
// use which subject, there and on an external server.
//
//	account EFFECTD_USERS                        account EFFECTD (JetStream)
//	  producer ─ effects.api.main.producer.… ──▶ answer ─ endpoints
//	  auditor  ─ $JS.API.DIRECT.GET.EFFECTS  ──▶ EFFECTS, EFFECT_FEED, …
//	  executor ◀─ effects.exec.main.charge ─┐    ledger ─ effects.log
//	  dispatch ─────────────────────────────┘
//
// Two accounts, because permissions judge the subject of a message and never its
// reply subject, and JetStream answers a reply subject by itself. In one account
// a producer whose intake publish says "Reply: effects.log" stores the server's
// acknowledgement in the log, and an auditor's read can store anything there.
// Across accounts a reply finds only what the requester's own account has: no stream.
//
// Invariants:
//
//	N1  No connection is served without the signature of a known nkey.
//	N2  A connection may use the subjects of its row and no others. No
//	    allow_responses anywhere.
//	N3  No user publishes, by a request or by a reply subject, into effects.log,
//	    effects.event, effects.denied or effects.node.
//	N4  No user creates, changes or deletes a stream or a consumer.
//	N5  Nobody reads another's inbox.
//	N6  The connection that answers users cannot write the log, and the one that
//	    writes the log reads no user's subject.
//	N7  Users change while traffic flows, without a reload of the server: who is
//	    removed or changed is disconnected.
//	N8  An acknowledged message is fsynced.
package natsserver
