// Package dispatcher carries admitted effects to the outside world, each at most
// once.
//
//	log ──durable consumer──▶ work set ──slot of its operation──▶ verify ──▶ render ──▶ room in the spool
//	                                                                                      │
//	       report ◀── result ◀── adapter: one send ◀── anchor fsynced ◀── claim won ◀─────┘
//	          └─ ledger away ──▶ spool ──▶ reported when it is back
//
// Invariants:
//
//	D1  Nothing is sent for a claim that this process did not win, or before the
//	    claim's entry is acknowledged and its position fsynced in the anchor.
//	D2  One claim, at most one send; redelivery, restarts and lost acks change
//	    nothing, because only the claim decides.
//	D3  The deadline counts on the monotonic clock from before the claim was asked
//	    for, and is checked by the adapter immediately before the first byte.
//	D4  Whatever cannot be rendered is found out before the claim and settled as
//	    no_effect; after the claim only what the adapter proved settles.
//	D5  A result that cannot be appended stays in the fsynced spool until it is;
//	    the send is never repeated for it.
//	D6  A slow operation holds up no other: each has its own slots.
//	D7  On a stop nothing new is claimed, and what runs is given its time, then
//	    reported as unknown(shutdown).
package dispatcher
