package bench

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/dispatcher"
	"github.com/effectd/effectd/events"
)

// contract is the operation that is measured: an HTTP call in every respect, but
// the adapter is [service].
const contract = `name: charge
version: 1
description: Charge a card account.
input:
  type: object
  required: [account, amount]
  additionalProperties: false
  properties: {account: {type: string}, amount: {type: integer, minimum: 1}, memo: {type: string}}
resource: account/${payload.account}
exposes: [account, amount]
cost: {usd_cents: payload.amount}
timeout: 60s
concurrency: 1024
adapter:
  kind: http
  method: POST
  url: http://127.0.0.1:8099/charges
  headers: {Content-Type: application/json}
idempotency: {header: Idempotency-Key, scope: account, retention: 24h, concurrent: true, mismatch_rejected: true}
outcomes:
  - {when: "response.status in [200, 201]", outcome: succeeded, means: completed, provider_ref: response.json.id, cost: {usd_cents: response.json.amount}}
  - {when: response.status == 402, outcome: failed, cost: {usd_cents: "0"}}
`

// answered is what the service says to everything.
var answered = operation.Response{Status: 201, Headers: map[string]string{"content-type": "application/json"},
	Body: []byte(`{"id":"ch_4eC39HqLyjWDarjtT1zdp7dc","amount":5}`)}

// service is the outside world without its time: the request is rendered and the
// answer classified by the contract, but nothing is connected to.
type service struct {
	sends atomic.Int64
	sent  func(events.EffectID)
}

// Render builds the request.
func (s *service) Render(send dispatcher.Send) (dispatcher.Shot, error) {
	in := operation.Input{Payload: send.Payload, Precondition: send.Binding.Precondition, Resource: send.Binding.Resource,
		EffectID: send.EffectID, IdempotencyKey: send.IdempotencyKey, Secret: send.Secret}
	if _, err := send.Contract.HTTPSend(in); err != nil {
		return nil, err
	}
	return shot{service: s, contract: send.Contract, in: in}, nil
}

type shot struct {
	*service
	contract *operation.Contract
	in       operation.Input
}

// Fire counts the send and reads the answer.
func (s shot) Fire(context.Context, time.Time) aggregate.Result {
	s.sends.Add(1)
	s.sent(s.in.EffectID)
	evidence := events.Evidence{Source: "adapter", At: events.InstantOf(time.Now()), Status: answered.Status, SHA256: events.DigestBytes(answered.Body)}
	verdict, matched := s.contract.Classify(answered, s.in)
	return dispatcher.Judge(verdict, matched, evidence, events.ReasonClassified)
}
