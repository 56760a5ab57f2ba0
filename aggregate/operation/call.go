package operation

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/effectd/effectd/events"
)

var (
	// ErrUnsupported: the contract does not declare what was asked for.
	ErrUnsupported = errors.New("not declared by the contract")
	// ErrPrecondition: the contract takes no precondition, or not one of this form.
	ErrPrecondition = errors.New("precondition not supported")
	// ErrUnsendable: the request cannot be built from this input; nothing was sent.
	ErrUnsendable = errors.New("request cannot be built")
	// ErrSecretMissing: a declared secret has no value. Wraps [ErrUnsendable].
	ErrSecretMissing = fmt.Errorf("%w: secret missing", ErrUnsendable)
)

// Call is one HTTP request, complete. It may hold secrets.
type Call struct {
	Method string
	URL    string
	Header [][2]string // name and value, in the order of the contract
	Body   []byte      // nil: none
}

// maxBody bounds a body, in bytes.
const maxBody = 4 << 20

// HTTPSend builds the one protected request of kind http.
func (c *Contract) HTTPSend(in Input) (Call, error) {
	if c.send == nil {
		return Call{}, fmt.Errorf("kind %s sends no HTTP: %w", c.Kind, ErrUnsupported)
	}
	call, err := c.send.build(newScope(in))
	if err != nil {
		return Call{}, fmt.Errorf("adapter.%w", err)
	}
	if c.Idempotency != nil {
		call.Header = append(call.Header, [2]string{c.Idempotency.Header, string(in.IdempotencyKey)})
	}
	state, err := c.precondition(in.Precondition)
	if err != nil {
		return Call{}, fmt.Errorf("%w: %w", ErrUnsendable, err)
	}
	if state != "" {
		call.Header = append(call.Header, [2]string{c.Precondition.Header, state})
	}
	return call, nil
}

// HTTPQuery builds the read that reconciles an unknown effect.
func (c *Contract) HTTPQuery(in Input) (Call, error) {
	if c.Reconcile == nil || c.Reconcile.query == nil {
		return Call{}, fmt.Errorf("query: %w", ErrUnsupported)
	}
	call, err := c.Reconcile.query.build(newScope(in))
	if err != nil {
		return Call{}, fmt.Errorf("reconcile.query.%w", err)
	}
	return call, nil
}

// HTTPPreview builds the read that is shown before commitment.
func (c *Contract) HTTPPreview(in Input) (Call, error) {
	if c.preview == nil {
		return Call{}, fmt.Errorf("preview: %w", ErrUnsupported)
	}
	call, err := c.preview.query.build(newScope(in))
	if err != nil {
		return Call{}, fmt.Errorf("preview.query.%w", err)
	}
	return call, nil
}

// CheckPrecondition says whether a request may carry this precondition. The
// error wraps [ErrPrecondition]. None at all is always accepted.
func (c *Contract) CheckPrecondition(raw events.Raw) error {
	_, err := c.precondition(raw)
	return err
}

// precondition is the text to pass on, empty for none.
func (c *Contract) precondition(raw events.Raw) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	if c.Precondition == nil {
		return "", ErrPrecondition
	}
	value, err := c.Precondition.from.eval(newScope(Input{Precondition: raw}))
	if err != nil {
		return "", fmt.Errorf("%w: precondition.from cannot be computed", ErrPrecondition)
	}
	state, err := textOf(value)
	switch {
	case err != nil || state == "" || len(state) > maxRendered:
		return "", fmt.Errorf("%w: precondition.from gives no text", ErrPrecondition)
	case c.Kind == KindFile && !isDigest(state):
		return "", fmt.Errorf("%w: precondition.from gives no SHA-256 in lower-case hex", ErrPrecondition)
	}
	if _, err := escapeLine(state); err != nil {
		return "", fmt.Errorf("%w: precondition.from gives %w", ErrPrecondition, err)
	}
	return state, nil
}

// build renders a request. Errors wrap [ErrUnsendable] and name the key.
func (r *request) build(v *scope) (Call, error) {
	for _, name := range r.secrets {
		if v.Secret == nil {
			return Call{}, fmt.Errorf("headers: %w: %s", ErrSecretMissing, name)
		}
		if _, ok := v.Secret(name); !ok {
			return Call{}, fmt.Errorf("headers: %w: %s", ErrSecretMissing, name)
		}
	}
	out := Call{Method: r.method}
	var err error
	if out.URL, err = r.renderURL(v); err != nil {
		return Call{}, fmt.Errorf("url: %w: %w", ErrUnsendable, err)
	}
	for _, h := range r.headers {
		value, err := h.value.render(v, nil)
		if err != nil {
			return Call{}, fmt.Errorf("headers.%s: %w: %w", h.name, ErrUnsendable, err)
		}
		out.Header = append(out.Header, [2]string{h.name, value})
	}
	if out.Body, err = r.renderBody(v); err != nil {
		return Call{}, fmt.Errorf("body: %w: %w", ErrUnsendable, err)
	}
	if out.Body != nil && r.contentType != "" {
		out.Header = append(out.Header, [2]string{"Content-Type", r.contentType})
	}
	return out, nil
}

// renderURL fills the URL and reads it back: whatever the values were, scheme
// and host are the contract's (O3).
func (r *request) renderURL(v *scope) (string, error) {
	out, err := r.url.render(v, &segments{ofURL: true})
	if err != nil {
		return "", err
	}
	u, err := url.Parse(out)
	if err != nil || u.Scheme != r.scheme || u.Host != r.host || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return "", errors.New("not the declared scheme and host")
	}
	return out, nil
}

func (r *request) renderBody(v *scope) ([]byte, error) {
	if r.body == nil {
		if r.defaultBody {
			return v.Payload.raw, nil
		}
		return nil, nil
	}
	value, err := r.body.eval(v)
	if err != nil {
		return nil, errors.New("cannot be computed")
	}
	out, err := jsonOf(value)
	if err == nil && len(out) > maxBody {
		err = fmt.Errorf("longer than %d bytes", maxBody)
	}
	return out, err
}
