package events

import "strings"

// Realistic values of every event: the golden files, the benchmarks and the
// seeds of the fuzz targets are made of them.

func digest(of string) Digest { return DigestBytes([]byte(of)) }

func at(text string) Instant {
	i, err := ParseInstant(text)
	if err != nil {
		panic(err)
	}
	return i
}

const (
	sampleLedger  LedgerID      = "01JZ8M4Q0V3T6B9D2F5H8K1N4Q"
	sampleWriter  Incarnation   = "01JZ8M4Q1A2B3C4D5E6F7G8H9J"
	sampleEffect  EffectID      = "01JZ8M6B7C8D9E0F1G2H3J4K5M"
	samplePermit  PermitID      = "01JZ8M6B9Q8W7E6R5T4Y3U2P1A"
	sampleReserve ReservationID = "01JZ8M6BAA0S9D8F7G6H5J4K3M"
	sampleAttempt AttemptID     = "01JZ8M7X0Z9X8C7V6B5N4M3Q2W"
	sampleUser                  = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
	sampleSign                  = "bm90IGEgcmVhbCBzaWduYXR1cmUsIG9ubHkgNjQgYnl0ZXMgb2YgdGV4dCB0aGF0IGxvb2tzIGxpa2U="
)

var (
	sampleContext = Context{
		V: Format, Tenant: "main", Principal: "producer", Auth: Auth{Source: "nkey", Strength: "signature"},
		Service: "billing", Session: "s-771", Process: "billing-7f9c/4412", RunID: "run-2026-03-14-0017",
		CausalID: "invoice-9931/charge", HostBinding: string(digest("host")),
	}
	sampleBinding = Binding{
		V: Format, EffectID: sampleEffect, Operation: "charge", OperationVersion: 1, OperationDigest: digest("contract"),
		Adapter: Adapter{Kind: "http", Build: "effectd/1.0.0"}, PayloadSHA256: DigestBytes(samplePayload),
		Resource: "account/acct_1041", Precondition: Raw(`{"etag":"\"v7\""}`), ContextSHA256: DigestOf(sampleContext),
		TaskID: "invoices-march", MaxCost: Amounts{"effects": 1, "usd_cents": 1999}, ExpiresAt: at("2026-03-14T09:36:53.589793238Z"),
		PolicyRevision: 3, IdempotencyKey: IdempotencyKey("ek_" + digest("key")),
	}
	samplePayload       = Raw(`{"account":"acct_1041","amount":1999,"note":"März – Grüße 😀"}`)
	sampleAuthorization = Authorization{
		V: Format, Kind: AuthorizationApproval, PolicyRevision: 3, PolicySHA256: digest("policy"),
		CedarRequest: Raw(`{"action":"request_approval","context":{"max_cost":{"usd_cents":1999},"target":"account/acct_1041"},"principal":"main/producer","resource":"charge"}`),
		Determining:  []string{"policy2"}, Decision: "allow", Approver: "main/approver", StatementSHA256: digest("statement"),
	}
	sampleReservation = []ReservationLine{
		{TaskID: "2026", Unit: "effects", Amount: 1}, {TaskID: "2026", Unit: "usd_cents", Amount: 1999},
		{TaskID: "invoices-march", Unit: "effects", Amount: 1}, {TaskID: "invoices-march", Unit: "usd_cents", Amount: 1999},
	}
	sampleIntent = Intent{
		V: Format, BindingDigest: DigestOf(sampleBinding), PermitSHA256: digest("permit"),
		AuthorizationSHA256: DigestOf(sampleAuthorization), ContextSHA256: DigestOf(sampleContext),
		IdempotencyKey: sampleBinding.IdempotencyKey,
		Reservation:    Reservation{ReservationID: sampleReserve, Lines: sampleReservation},
	}
	sampleReceipt = Receipt{
		ReceiptID: ReceiptID("rc_" + digest("receipt")), V: Format, EffectID: sampleEffect, IntentSHA256: DigestOf(sampleIntent),
		RunID: sampleContext.RunID, CausalID: sampleContext.CausalID, Stream: "EFFECTS",
		DurablePosition: Position{Seq: 1042, Index: 2}, StoreFingerprint: digest("store"), CommittedAt: at("2026-03-14T09:26:53.589793238Z"),
	}
	sampleEvidence = Evidence{
		Source: "adapter", At: at("2026-03-14T09:26:53.9Z"), Status: 201, Rule: "outcomes[0]", Detail: "created",
		Named: Raw(`{"cost":{"usd_cents":1999},"provider_ref":"ch_88123"}`), Reference: "INC-4411", Who: "main/operator", SHA256: digest("body"),
	}
	sampleDispatcher = Dispatcher{Node: "node-a", Incarnation: sampleWriter}
)

// sampleData holds one full value of every event type.
var sampleData = []Data{
	LedgerOpened{
		LedgerID: sampleLedger, Writer: sampleWriter, Node: "node-a", Program: "effectd/1.0.0", StoreFingerprint: digest("store"),
		Limits: Limits{Profile: "local", EffectRecords: 10_000, LiveBytes: 64 << 20, RecordBytes: 64 << 10, LogBytes: 8 << 30,
			PreparedPerPrincipal: 1000, RequestsInFlight: 1024, PermitTTLMS: 600_000},
	},
	LedgerRecovered{OldFingerprint: digest("old"), NewFingerprint: digest("store"), From: "export", LastGood: Position{Seq: 1041, Index: 5}},
	OperationRegistered{Version: 1, Digest: digest("contract"), Contract: "name: charge\nversion: 1\ndescription: Charge a card account.\n"},
	OperationRetired{Version: 1},
	PolicyChanged{Revision: 3, PolicySHA256: digest("policy"), Policy: "permit (principal in Role::\"producer\", action == Action::\"commit\", resource);\n"},
	AccessChanged{Revision: 2, Users: []User{
		{Tenant: "main", Principal: "executor", Role: RoleExecutor, PublicKey: sampleUser, Operations: []string{"charge"}},
		{Tenant: "main", Principal: "producer", Role: RoleProducer, PublicKey: sampleUser},
	}},
	TaskOpened{
		Parent: "2026", Budgets: Amounts{"calls": 0, "effects": 1000, "usd_cents": MaxAmount}, Exposure: Amounts{"usd_cents": 50_000},
		Holders: []Actor{"main/producer"}, ExpiresAt: at("2026-04-01T00:00:00Z"),
	},
	TaskClosed{Reason: "month closed"},
	Prepared{
		Binding: sampleBinding, BindingDigest: DigestOf(sampleBinding), RequestSHA256: digest("request"), Context: sampleContext,
		Payload: samplePayload, PayloadRef: "EFFECT_PAYLOADS/17", Preview: Raw(`{"balance":120000}`), OnPermit: OnPermitAdmit,
	},
	Permitted{Permit: Permit{
		V: Format, ID: samplePermit, EffectID: sampleEffect, BindingDigest: DigestOf(sampleBinding), Authorization: sampleAuthorization,
		MaxCost: sampleBinding.MaxCost, ExpiresAt: at("2026-03-14T09:36:53Z"), Statement: `{"decision":"approve","v":1}`,
		Signature: sampleSign, PublicKey: sampleUser,
	}},
	Refused{Reason: ReasonApprovalDenied, Detail: "amount too high", By: "main/approver", Statement: `{"decision":"deny","v":1}`,
		Signature: sampleSign, PublicKey: sampleUser},
	Admitted{PermitID: samplePermit, Intent: sampleIntent, ReservationID: sampleReserve, Reservation: sampleReservation},
	Dispatched{Dispatcher: sampleDispatcher, NonceSHA256: digest("nonce"), Receipt: sampleReceipt, DeadlineMS: 2000,
		CredentialSHA256: digest("credential"), IdempotencyUntil: at("2026-03-15T09:26:53Z")},
	Settled{
		Outcome: OutcomeSucceeded, Means: MeansCompleted, Reason: ReasonClassified, Evidence: sampleEvidence,
		Cost: Amounts{"effects": 1, "usd_cents": 2100}, CostInvalid: true, Overrun: Amounts{"usd_cents": 101}, ProviderRef: "ch_88123",
		Late: true, AuditIncomplete: true, AttemptID: sampleAttempt, Statement: `{"outcome":"succeeded","v":1}`,
		Signature: sampleSign, PublicKey: sampleUser,
	},
	Unknown{Reason: ReasonResponseLost, Evidence: &sampleEvidence, AuditIncomplete: true, SendEnded: true},
	ReconcileStarted{AttemptID: sampleAttempt, Method: MethodQuery, AuthorizedBy: "main/operator", Dispatcher: sampleDispatcher,
		Deadline: at("2026-03-14T09:27:30Z")},
	ReconcileEnded{AttemptID: sampleAttempt, Result: AttemptInconclusive, Evidence: &sampleEvidence},
	Acknowledged{By: "main/operator", Reason: "checked with the bank by telephone"},
	Contradicted{Outcome: OutcomeFailed, Evidence: sampleEvidence, Cost: Amounts{"usd_cents": 7}},
	RunCancelled{Principal: "producer", Reason: "operator asked"},
	RunFinished{Principal: "producer", Outcome: RunSucceeded},
	Collected{Effects: []EffectID{sampleEffect, "01JZ8M6B7C8D9E0F1G2H3J4K5N"}, Horizon: at("2026-03-13T00:00:00Z")},
}

// sampleEvent wraps data in a full envelope.
func sampleEvent(d Data) Event {
	return Event{
		V: Format, ID: "01JZ8M6BBB" + EventID(strings.Repeat("0", 16)), Type: d.Type(), Time: at("2026-03-14T09:26:53.589793238Z"),
		Tenant: "main", Actor: "main/producer", EffectID: sampleEffect, Operation: "charge", TaskID: "invoices-march",
		RunID: sampleContext.RunID, CausalID: sampleContext.CausalID, IntentSHA256: DigestOf(sampleIntent), Data: d,
	}
}

// sampleEntry holds one event of every type.
func sampleEntry() Entry {
	e := Entry{V: Format, LedgerID: sampleLedger, Seq: 1042, Prev: digest("previous"), Time: at("2026-03-14T09:26:53.589793238Z"), Writer: sampleWriter}
	for _, d := range sampleData {
		e.Events = append(e.Events, sampleEvent(d))
	}
	return e
}

// usualEntry holds the life of one effect as the hot path writes it.
func usualEntry() Entry {
	e := sampleEntry()
	e.Events = nil
	authorization := sampleAuthorization
	authorization.Kind, authorization.Approver, authorization.StatementSHA256 = AuthorizationPolicy, "", ""
	for _, d := range []Data{
		Prepared{Binding: sampleBinding, BindingDigest: DigestOf(sampleBinding), RequestSHA256: digest("request"), Context: sampleContext,
			Payload: samplePayload, OnPermit: OnPermitAdmit},
		Permitted{Permit: Permit{V: Format, ID: samplePermit, EffectID: sampleEffect, BindingDigest: DigestOf(sampleBinding),
			Authorization: authorization, MaxCost: sampleBinding.MaxCost, ExpiresAt: at("2026-03-14T09:36:53Z")}},
		sampleData[11], sampleData[12],
		Settled{Outcome: OutcomeSucceeded, Means: MeansCompleted, Reason: ReasonClassified, Evidence: sampleEvidence,
			Cost: Amounts{"effects": 1, "usd_cents": 1999}, ProviderRef: "ch_88123"},
	} {
		e.Events = append(e.Events, sampleEvent(d))
	}
	return e
}
