package main

import (
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/effectd/effectd/embedded/bench"
)

// benchCmd measures on scratch directories.
type benchCmd struct {
	InFlight []int         `name:"in-flight" default:"1,64,512" placeholder:"N" help:"Requests kept open, one row each (default: ${default})."`
	Duration time.Duration `default:"5s" placeholder:"5s" help:"How long each row is measured on each side (default: ${default})."`
	Dir      string        `placeholder:"DIR" type:"existingdir" help:"Make the scratch directories here, on the disk that is to be measured (default: the directory for temporary files)."`
}

// Run implements the command.
func (c *benchCmd) Run(e *env) error {
	o := bench.Options{InFlight: c.InFlight, Duration: c.Duration, Dir: c.Dir}
	if err := o.Validate(); err != nil {
		return &usage{err.Error(), "effectd bench --help"}
	}
	steps := newSteps(e.err)
	o.Progress = steps.step
	result, err := bench.Run(e.ctx, o)
	steps.end()
	if err != nil {
		return err
	}
	e.show(result, func(p *page) { benchPage(p, &result) })
	return nil
}

// benchPage shows what was measured.
func benchPage(p *page, r *bench.Result) {
	p.row("IN FLIGHT", "EFFECTS/S", "BARE/S", "RATIO", "ADMITTED P50", "P99", "SETTLED P50", "P99", "ENTRIES/EFFECT", "LOG/EFFECT")
	for _, row := range r.Rows {
		p.row(strconv.Itoa(row.InFlight), perSecond(row.EffectsPerS), perSecond(row.BarePerS), fmt.Sprintf("%.2f", row.Ratio),
			milliseconds(row.AdmittedMS.P50), milliseconds(row.AdmittedMS.P99), milliseconds(row.SettledMS.P50), milliseconds(row.SettledMS.P99),
			fmt.Sprintf("%.3f", row.EntriesPerEffect), size(int64(row.LogBytesPerEffect)))
	}
	p.line("")
	p.line("Durable publishes one at a time: " + perSecond(r.RawPublishPerS) + "/s. Bare is the same pipeline without law, digests, policy and projection.")
}

func perSecond(v float64) string { return fmt.Sprintf("%.0f", v) }

func milliseconds(v float64) string { return fmt.Sprintf("%.1f ms", v) }

// steps shows on a terminal what is done now, and nothing elsewhere.
type steps struct {
	all *mpb.Progress
	bar *mpb.Bar
	now atomic.Value // string: the bar is drawn by another goroutine
}

func newSteps(out io.Writer) *steps {
	return &steps{all: mpb.New(mpb.WithOutput(out), mpb.WithWidth(40))}
}

func (s *steps) text(decor.Statistics) string { return s.now.Load().(string) }

// step is told what begins, and how many steps of all are done.
func (s *steps) step(what string, done, total int) {
	s.now.Store(what)
	if s.bar == nil {
		s.bar = s.all.AddBar(int64(total), mpb.BarRemoveOnComplete(), mpb.AppendDecorators(decor.Any(s.text)))
	}
	s.bar.SetCurrent(int64(done))
}

func (s *steps) end() {
	if s.bar != nil {
		s.bar.Abort(true)
	}
	s.all.Wait()
}
