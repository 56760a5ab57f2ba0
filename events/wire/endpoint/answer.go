package endpoint

import (
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/effectd/effectd/events/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
)

// answer is the one reply to a request. It does not use micro's own Respond:
// micro reads what that writes as soon as its handler has returned.
type answer struct {
	service *Service
	name    string // of the endpoint
	to      string
}

var text = json.JoinOptions(json.Deterministic(true), jsontext.AllowInvalidUTF8(true))

func (a answer) give(reply any, refusal *wire.Error) {
	if refusal != nil {
		a.refuse(refusal)
		return
	}
	body, err := json.Marshal(reply, text)
	if err != nil {
		a.service.log.Error("reply cannot be encoded", "endpoint", a.name, "error", err)
		a.refuse(wire.Errorf(wire.LedgerUnavailable, "the reply cannot be encoded"))
		return
	}
	a.send(&nats.Msg{Subject: a.to, Data: body})
}

func (a answer) refuse(refusal *wire.Error) {
	if n, ok := a.service.errors.Load(a.name); ok {
		n.(*atomic.Int64).Add(1)
	}
	body, err := json.Marshal(wire.ErrorReply{Error: refusal}, text)
	if err != nil { // the effect inside cannot be encoded: say the rest
		body, _ = json.Marshal(wire.ErrorReply{Error: &wire.Error{Code: refusal.Code, Message: refusal.Message, Field: refusal.Field}}, text)
	}
	a.send(&nats.Msg{Subject: a.to, Data: body, Header: nats.Header{
		wire.HeaderErrorCode: {strconv.Itoa(refusal.Code.Status())},
		wire.HeaderError:     {string(refusal.Code)},
	}})
}

func (a answer) send(m *nats.Msg) {
	err := a.service.conn.PublishMsg(m)
	if errors.Is(err, nats.ErrMaxPayload) && m.Header == nil {
		a.refuse(wire.Errorf(wire.RecordTooLarge, "the reply is larger than a message may be: ask for less"))
		return
	}
	if err != nil {
		a.service.log.Warn("reply not sent", "endpoint", a.name, "error", err)
	}
}
