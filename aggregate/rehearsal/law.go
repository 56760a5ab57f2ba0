package rehearsal

import (
	"encoding/base64"
	"fmt"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/events"
	"github.com/nats-io/nkeys"
)

// The principals of a new world.
var (
	Producer = aggregate.Caller{Tenant: "main", Principal: "producer"}
	Other    = aggregate.Caller{Tenant: "main", Principal: "other"} // another producer
	Approver = aggregate.Caller{Tenant: "main", Principal: "approver"}
	Operator = aggregate.Caller{Tenant: "main", Principal: "operator"}
	Auditor  = aggregate.Caller{Tenant: "main", Principal: "auditor"}
	Stranger = aggregate.Caller{Tenant: "side", Principal: "producer"} // of another tenant
	Foreman  = aggregate.Caller{Tenant: "side", Principal: "operator"}
)

// Policy is the owner's policy of a new world: charge and note need no approval,
// wire does, and nobody may touch the account "forbidden".
const Policy = `
permit(principal in Role::"producer", action == Action::"commit", resource == Operation::"charge");
permit(principal in Role::"producer", action == Action::"commit", resource == Operation::"note");
permit(principal in Role::"producer", action == Action::"request_approval", resource == Operation::"wire");
permit(principal in Role::"operator", action, resource);
permit(principal in Role::"auditor", action == Action::"observe", resource);
permit(principal in Role::"approver", action == Action::"observe", resource);
forbid(principal, action == Action::"commit", resource) when { context.payload has account && context.payload.account == "forbidden" };
forbid(principal, action == Action::"request_approval", resource) when { context.payload has account && context.payload.account == "forbidden" };
`

// DenyAll is a policy under which nothing new is permitted.
const DenyAll = `permit(principal in Role::"operator", action, resource);`

// ApproveAll is a policy under which every effect needs an approval.
const ApproveAll = DenyAll + `
permit(principal in Role::"producer", action == Action::"request_approval", resource);`

// charge costs money, can be asked about and resubmitted.
const charge = `name: charge
version: %d
description: Charge a card account.
input:
  type: object
  required: [account, amount]
  additionalProperties: false
  properties: {account: {type: string}, amount: {type: integer}}
resource: account/${payload.account}
exposes: [account, amount]
cost: {usd_cents: payload.amount}
expires: 10m
timeout: 2s
adapter:
  kind: http
  method: POST
  url: http://127.0.0.1:8099/charges
precondition: {header: If-Match, from: precondition.etag}
idempotency: {header: Idempotency-Key, scope: account, retention: 24h, concurrent: true, mismatch_rejected: true}
outcomes:
  - {when: response.status == 200, outcome: succeeded}
reconcile:
  query: {method: GET, url: "http://127.0.0.1:8099/charges?key=${idempotency_key}"}
  rules:
    - {when: response.status == 200, outcome: succeeded}
    - {when: response.status == 404, not_found: true}
  not_found_is_conclusive: true
  settling_window: 5s
  resubmit_same_key: true
`

// note costs nothing and declares nothing: it cannot be reconciled.
const note = `name: note
version: 1
description: Post a note.
input: {type: object, properties: {account: {type: string}}}
resource: notes
exposes: [account]
adapter: {kind: http, method: POST, url: "http://127.0.0.1:8099/notes"}
outcomes:
  - {when: response.status == 200, outcome: succeeded}
`

// wire needs an approval; "not found" proves nothing about it.
const wireTransfer = `name: wire
version: 1
description: Wire money.
input:
  type: object
  required: [account, amount]
  properties: {account: {type: string}, amount: {type: integer}}
resource: iban/${payload.account}
exposes: [account, amount]
cost: {usd_cents: payload.amount, wires: "1"}
expires: 1h
adapter: {kind: http, method: POST, url: "http://127.0.0.1:8099/wires"}
outcomes:
  - {when: response.status == 200, outcome: succeeded}
reconcile:
  query: {method: GET, url: "http://127.0.0.1:8099/wires?key=${idempotency_key}"}
  rules:
    - {when: response.status == 200, outcome: succeeded}
    - {when: response.status == 404, not_found: true}
  not_found_is_conclusive: false
`

// Contracts are the operations of a new world.
func Contracts() []*operation.Contract {
	return []*operation.Contract{Charge(1), Contract(note), Contract(wireTransfer)}
}

// Charge is a version of the operation charge.
func Charge(version int64) *operation.Contract { return Contract(fmt.Sprintf(charge, version)) }

// Contract compiles a text that is known to be good.
func Contract(text string) *operation.Contract {
	c, err := operation.Compile("contract.yaml", []byte(text))
	if err != nil {
		panic(err)
	}
	return c
}

// Users is the principal table of a new world.
func Users() []events.User {
	row := func(c aggregate.Caller, r events.Role) events.User {
		public, _ := Key(c).PublicKey()
		return events.User{Tenant: c.Tenant, Principal: c.Principal, Role: r, PublicKey: public}
	}
	return []events.User{
		row(Approver, events.RoleApprover), row(Auditor, events.RoleAuditor), row(Operator, events.RoleOperator),
		row(Other, events.RoleProducer), row(Producer, events.RoleProducer),
		row(Foreman, events.RoleOperator), row(Stranger, events.RoleProducer),
	}
}

// Key is the fixed key of a principal.
func Key(c aggregate.Caller) nkeys.KeyPair {
	var raw [32]byte
	copy(raw[:], c.Actor())
	seed, err := nkeys.EncodeSeed(nkeys.PrefixByteUser, raw[:])
	if err != nil {
		panic(err)
	}
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		panic(err)
	}
	return pair
}

// sign signs a text as a principal: base64, and the public key.
func sign(c aggregate.Caller, text string) (signature, public string) {
	pair := Key(c)
	raw, err := pair.Sign([]byte(text))
	if err != nil {
		panic(err)
	}
	public, _ = pair.PublicKey()
	return base64.StdEncoding.EncodeToString(raw), public
}
