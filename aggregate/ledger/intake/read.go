package intake

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

const (
	defaultPage = 50
	maxPage     = 500
	maxLooks    = 4096 // messages that one page looks at: those of other tenants count
)

// Read is a page of the denials of a tenant, newest first. A page may be short, or
// empty, and yet have a cursor.
func (d *Denials) Read(ctx context.Context, t events.Tenant, r wire.DenialListRequest) (wire.List[wire.Denial], error) {
	page := wire.List[wire.Denial]{Items: []wire.Denial{}}
	if d.off != "" {
		return page, errors.New(d.off)
	}
	stream, err := d.js.Stream(ctx, wire.DenialStream)
	if err != nil {
		return page, err
	}
	kept := stream.CachedInfo().State
	seq := kept.LastSeq
	if before, err := strconv.ParseUint(r.Cursor, 10, 63); err == nil {
		seq = min(seq, max(before, 1)-1)
	}
	most := min(max(r.Limit, 0), maxPage)
	if most == 0 {
		most = defaultPage
	}
	for looks := 0; seq >= max(kept.FirstSeq, 1); seq-- {
		if looks++; looks > maxLooks || int64(len(page.Items)) == most {
			page.Cursor = strconv.FormatUint(seq+1, 10)
			break
		}
		m, err := stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return page, err
		}
		if !strings.HasPrefix(m.Subject, wire.DeniedPrefix+string(t)+".") {
			continue
		}
		var n wire.Denial
		if err := json.Unmarshal(m.Data, &n); err != nil {
			return page, fmt.Errorf("denial %d: %w", seq, err)
		}
		page.Items = append(page.Items, n)
	}
	return page, nil
}
