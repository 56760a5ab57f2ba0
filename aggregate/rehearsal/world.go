package rehearsal

import (
	"encoding/binary"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/oklog/ulid/v2"
)

// LedgerID names the ledger of every world.
const LedgerID events.LedgerID = "01K0000000000000000000LEDG"

// Node is the node of every world.
const Node = "node-1"

// Fingerprint pins the store of every world.
var Fingerprint = events.DigestBytes([]byte("store"))

// Start is the ledger time at which a world begins.
const Start events.Instant = 1_767_225_600_000_000_000 // 2026-01-01T00:00:00Z

// World is one ledger. It is not safe for concurrent use.
type World struct {
	State   *aggregate.State
	At      events.Instant // ledger time of the next command
	Entries []events.Stored
	Life    events.Incarnation // of the node's process
	Touched []aggregate.Key    // records that the last entry changed
	decided uint64             // counts ids
	lives   int
}

// Limits are small where a test wants to meet them.
var Limits = events.Limits{Profile: "local", EffectRecords: 10_000, LiveBytes: 64 << 20, RecordBytes: 64 << 10, PermitTTLMS: 300_000,
	PreparedPerPrincipal: 1000, RequestsInFlight: 1024}

// Empty is a world before the first entry.
func Empty() *World { return &World{State: aggregate.New(), At: Start} }

// New is a world whose ledger is open and has its law, and a root task "t" that
// producer and other hold: 10,000 usd_cents, 20 wires, until a day from now.
func New() *World { return NewLimited(Limits) }

// NewLimited is [New] with other limits.
func NewLimited(l events.Limits) *World {
	w := Empty()
	w.must(w.open(l))
	w.must(aggregate.ChangeAccess{Users: Users()})
	for _, c := range Contracts() {
		w.must(aggregate.RegisterOperation{Contract: c})
	}
	w.must(aggregate.ChangePolicy{Text: Policy})
	w.must(w.OpenTask(Operator, "t", "", events.Amounts{"usd_cents": 10_000, "wires": 20}, Producer, Other))
	return w
}

func (w *World) must(c aggregate.Command) {
	if d := w.Do(c); d.Refusal != nil {
		panic(d.Refusal)
	}
}

// open is the command by which a new life of the node takes over.
func (w *World) open(l events.Limits) aggregate.OpenLedger {
	w.lives++
	w.Life = events.Incarnation(w.id(uint64(w.lives) << 40).String())
	return aggregate.OpenLedger{LedgerID: LedgerID, Writer: w.Life, Node: Node, Program: "rehearsal", Limits: l, Fingerprint: Fingerprint}
}

// Takeover is the command with which the next life of the node begins.
func (w *World) Takeover() aggregate.Command { return w.open(w.State.Head().Limits) }

// Restart ends the life of the node's process and begins another.
func (w *World) Restart() aggregate.Decision { return w.Do(w.Takeover()) }

// Tick lets ledger time pass.
func (w *World) Tick(d time.Duration) { w.At = w.At.Add(d) }

// Do decides one command and makes what it leads to one entry.
func (w *World) Do(c aggregate.Command) aggregate.Decision { return w.Batch(c)[0] }

// Batch decides commands, each on what the ones before it leave, and makes one
// entry of all their events.
func (w *World) Batch(commands ...aggregate.Command) []aggregate.Decision {
	w.At += events.Instant(time.Millisecond)
	head, branch := w.State.Head(), w.State.Branch()
	entry := events.Entry{V: events.Format, LedgerID: LedgerID, Seq: head.Seq + 1, Prev: head.SHA256, Time: w.At, Writer: w.Life}
	var decisions []aggregate.Decision
	var encoded [][]byte
	for _, c := range commands {
		d := branch.Decide(c, w.input(len(entry.Events)))
		entry.Events = append(entry.Events, d.Events...)
		encoded = append(encoded, d.Encoded...)
		decisions = append(decisions, d)
	}
	if len(entry.Events) > 0 {
		stored := events.SealEncoded(entry, encoded)
		branch.Seal(stored.Seq, stored.SHA256, stored.Time)
		w.Touched = branch.Touched()
		branch.ClearTouched()
		w.State = branch
		w.Entries = append(w.Entries, stored)
	}
	return decisions
}

// input is what the next decision gets from the world.
func (w *World) input(index int) aggregate.Input {
	w.decided++
	return aggregate.Input{At: w.At, ID: w.id(w.decided << 16), Seq: w.State.Seq() + 1, Index: index}
}

func (w *World) id(n uint64) ulid.ULID {
	var id ulid.ULID
	_ = id.SetTime(uint64(w.At.Time().UnixMilli()))
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}
