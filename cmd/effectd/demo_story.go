package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// The chapters of the demo, in order. Each claims only what it has checked.

// wanted is a charge that the producer asks for, and what became of it.
type wanted struct {
	task    events.TaskID
	step    events.CausalID
	account string
	amount  int64
	effect  wire.Effect
}

const demoRun events.RunID = "demo"

// request is the charge as the wire asks for it.
func (w *wanted) request() wire.SubmitRequest {
	run, step := demoRun, w.step
	payload := events.CanonicalOf(struct {
		Account string `json:"account"`
		Amount  int64  `json:"amount"`
	}{w.account, w.amount})
	return wire.SubmitRequest{
		PrepareRequest: wire.PrepareRequest{TaskID: w.task, Operation: "charge", Payload: payload,
			SealedContext: wire.SealedContext{RunID: &run, CausalID: &step}},
		Wait: wire.WaitTerminal, TimeoutMS: (10 * time.Second).Milliseconds(),
	}
}

// submit asks for the charge and waits for its end.
func (s *story) submit(w *wanted) (err error) {
	w.effect, err = s.producer.Submit(s.ctx, w.request())
	return err
}

const (
	shop events.TaskID = "shop" // the budget of the ordinary orders
	sale events.TaskID = "sale" // a budget for five of them

	orderCents = 500
	saleOrders = 5
	crowd      = 20
)

func (s *story) openTasks() error {
	until := events.InstantOf(s.now().Add(time.Hour)).String()
	for task, cents := range map[events.TaskID]int64{shop: 10000, sale: saleOrders * orderCents} {
		_, err := s.operator.TaskOpen(s.ctx, wire.TaskOpenRequest{TaskID: task, Budgets: events.Amounts{"usd_cents": cents},
			Holders: []events.Actor{"main/producer"}, ExpiresAt: until})
		if err != nil {
			return err
		}
	}
	return nil
}

// charges: one charge, all the way.
func (s *story) charges() error {
	s.begin("A charge, all the way: 12.00 from alice, paid from a budget of 100.00")
	s.first = wanted{task: shop, step: "order-1", account: "alice", amount: 1200}
	if err := s.submit(&s.first); err != nil {
		return err
	}
	x := &s.first.effect
	if err := s.timeline(x.EffectID); err != nil {
		return err
	}
	n, sum := s.service.charged("alice")
	task, err := s.task(shop, x.Position)
	if err != nil {
		return err
	}
	return all(
		that(s, "the ledger says: settled, succeeded", "settled: succeeded", stateWords(x)),
		that(s, "the service's book has one charge of 12.00 to alice", "1 charge, 1200 cents", book(n, sum)),
		that(s, "the request was sent once", 1, s.service.sent(string(x.IdempotencyKey))),
		that(s, "the producer holds a receipt: proof that it was admitted, at a position of the log", true, x.Receipt != nil),
		that(s, "the budget has 12.00 spent and 88.00 left", "spent 1200, left 8800", account(task)),
	)
}

// repeats: the same request again is the same effect.
func (s *story) repeats() error {
	s.begin("The producer did not see the answer and asks again, word for word")
	again := s.first
	if err := s.submit(&again); err != nil {
		return err
	}
	n, sum := s.service.charged("alice")
	return all(
		that(s, "it gets the same effect back", s.first.effect.EffectID, again.effect.EffectID),
		that(s, "the answer says that it is a repeat", true, again.effect.Repeat),
		that(s, "nothing was sent: alice is still charged once", "1 charge, 1200 cents", book(n, sum)),
	)
}

// changes: the same step with another payload is refused.
func (s *story) changes() error {
	s.begin("Somebody changes the amount to 99.00 under the same run and step")
	changed := s.first
	changed.amount = 9900
	err := s.submit(&changed)
	n, sum := s.service.charged("alice")
	return all(
		that(s, "refused: binding_mismatch; what was bound cannot change", wire.BindingMismatch, refusedWith(err)),
		that(s, "alice is still charged once, 12.00", "1 charge, 1200 cents", book(n, sum)),
	)
}

// crowds: concurrent requests against one budget.
func (s *story) crowds() error {
	s.begin(fmt.Sprintf("%d requests at the same moment, against a budget for %d", crowd, saleOrders))
	settled, exceeded, last := 0, 0, events.Position{}
	for _, a := range s.rush() {
		if last.Less(a.effect.Position) {
			last = a.effect.Position
		}
		switch {
		case a.err == nil && a.effect.State == wire.StateSettled && a.effect.Outcome == events.OutcomeSucceeded:
			settled++
		case refusedWith(a.err) == wire.BudgetExceeded:
			exceeded++
		default:
			s.say("   an answer of neither kind: %s %v", stateWords(&a.effect), a.err)
		}
	}
	n, sum := s.service.charged("carol")
	task, err := s.task(sale, last)
	if err != nil {
		return err
	}
	return all(
		that(s, fmt.Sprintf("%d were admitted and settled", saleOrders), saleOrders, settled),
		that(s, fmt.Sprintf("%d were refused: budget_exceeded", crowd-saleOrders), crowd-saleOrders, exceeded),
		that(s, fmt.Sprintf("the service's book has %d charges to carol, and not one more", saleOrders), "5 charges, 2500 cents", book(n, sum)),
		that(s, "the budget is spent to the cent", "spent 2500, left 0", account(task)),
	)
}

// answer is what one of a crowd got.
type answer struct {
	effect wire.Effect
	err    error
}

// rush submits all orders of the sale at once.
func (s *story) rush() []answer {
	answers := make([]answer, crowd)
	start := make(chan struct{})
	var done sync.WaitGroup
	for i := range answers {
		done.Go(func() {
			w := wanted{task: sale, step: events.CausalID(fmt.Sprintf("sale-%d", i+1)), account: "carol", amount: orderCents}
			<-start
			answers[i].err = s.submit(&w)
			answers[i].effect = w.effect
		})
	}
	close(start)
	done.Wait()
	return answers
}

// loses: the service does the work and the answer is lost.
func (s *story) loses() error {
	s.begin("The service charges bob 7.00, but its answer is lost on the way")
	s.service.loseNext()
	s.lost = wanted{task: shop, step: "order-2", account: "bob", amount: 700}
	if err := s.submit(&s.lost); err != nil {
		return err
	}
	n, sum := s.service.charged("bob")
	task, err := s.task(shop, s.lost.effect.Position)
	if err != nil {
		return err
	}
	return all(
		that(s, "the ledger does not guess: unknown, response_lost", "unknown: response_lost", stateWords(&s.lost.effect)),
		that(s, "the service did charge bob", "1 charge, 700 cents", book(n, sum)),
		that(s, "the budget holds the 7.00 until something is proven", int64(700), task.Budgets["usd_cents"].Unknown),
	)
}

// restarts: the node goes down and comes back; nothing is sent again.
func (s *story) restarts() error {
	s.begin("The node is stopped and started again")
	before := s.lost.effect
	if err := s.stop(); err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return err
	}
	// Another order shows that the dispatcher is at work again; what it would
	// have sent a second time it would have sent by now.
	next := wanted{task: shop, step: "order-3", account: "dave", amount: 300}
	if err := s.submit(&next); err != nil {
		return err
	}
	after, err := s.operator.Get(s.ctx, wire.GetRequest{EffectID: before.EffectID, MinPosition: next.effect.Position.String()})
	if err != nil {
		return err
	}
	n, sum := s.service.charged("bob")
	return all(
		that(s, "a new order is served: 3.00 from dave is settled", "settled: succeeded", stateWords(&next.effect)),
		that(s, "bob's charge is still unknown; time proves nothing", "unknown: response_lost", stateWords(&after)),
		that(s, "and still charged exactly once", "1 charge, 700 cents", book(n, sum)),
		that(s, "its request was sent once, not again", 1, s.service.sent(string(before.IdempotencyKey))),
	)
}

// reconciles: an operator has the service asked.
func (s *story) reconciles() error {
	s.begin("An operator has the service asked: what do you have under this key?")
	x, err := s.operator.Reconcile(s.ctx, wire.ReconcileRequest{EffectID: s.lost.effect.EffectID})
	if err != nil {
		return err
	}
	if err := s.timeline(x.EffectID); err != nil {
		return err
	}
	n, sum := s.service.charged("bob")
	task, err := s.task(shop, x.Position)
	if err != nil {
		return err
	}
	return all(
		that(s, "its book proves the charge: settled, succeeded", "settled: succeeded", stateWords(&x)),
		that(s, "the service was asked once", 1, s.service.questions()),
		that(s, "and not told to charge again", 1, s.service.sent(string(x.IdempotencyKey))),
		that(s, "bob is charged exactly once", "1 charge, 700 cents", book(n, sum)),
		that(s, "the 7.00 moved from held to spent", "spent 2200, left 7800", account(task)),
	)
}

// verifies: an auditor recomputes the whole log.
func (s *story) verifies() error {
	s.begin("An auditor checks the whole log: every digest, decision and cent")
	who, err := s.identity(events.RoleAuditor)
	if err != nil {
		return err
	}
	log, closeLog, err := who.liveLog(s.ctx)
	if err != nil {
		return err
	}
	defer closeLog()
	report, err := auditLog(s.ctx, log, func(uint64, uint64) {})
	if err != nil {
		return err
	}
	if report.First != nil {
		s.say("   %s", findingWords(report.First))
	}
	return all(
		that(s, fmt.Sprintf("%s read, with %s", count(report.Entries, "entry", "entries"), count(report.Events, "event", "events")), true, report.Events > 0),
		that(s, fmt.Sprintf("%s found something to check, and no violation", count(applied(report), "rule", "rules")), int64(0), violations(report)),
	)
}

// task reads a task as of a position that an answer came from, or later.
func (s *story) task(id events.TaskID, at events.Position) (wire.Task, error) {
	return s.operator.TaskGet(s.ctx, wire.TaskGetRequest{TaskID: id, MinPosition: at.String()})
}

func (s *story) timeline(id events.EffectID) error {
	pages, err := history(s.ctx, s.operator, id)
	if err != nil {
		return err
	}
	steps, err := opened(pages)
	if err != nil {
		return err
	}
	s.page(func(p *page) {
		for i, st := range steps {
			after := ""
			if i > 0 {
				after = "+" + duration(st.ev.Time.Sub(steps[i-1].ev.Time))
			}
			p.row("     "+after, string(st.ev.Type), eventWords(&st.ev))
		}
	})
	return nil
}

func refusedWith(err error) wire.Code {
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return wire.Code(fmt.Sprint("no refusal: ", err))
}

func book(n int, sum int64) string {
	return fmt.Sprintf("%s, %d cents", count(n, "charge", "charges"), sum)
}

func account(t wire.Task) string {
	b := t.Budgets["usd_cents"]
	return fmt.Sprintf("spent %d, left %d", b.Spent, b.Available)
}
