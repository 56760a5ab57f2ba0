package main

import (
	"io"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows a bar per kind of long work on a terminal, and nothing
// elsewhere. Its methods may be called concurrently.
type progress struct {
	mu   sync.Mutex
	out  io.Writer
	all  *mpb.Progress
	bars map[string]*mpb.Bar
}

func newProgress(out io.Writer) *progress { return &progress{out: out, bars: map[string]*mpb.Bar{}} }

// step is told how much of what is done.
func (p *progress) step(what string, done, total uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(40))
	}
	bar := p.bars[what]
	if bar == nil {
		bar = p.all.AddBar(0, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(what+" ")),
			mpb.AppendDecorators(decor.CountersNoUnit("%d of %d entries")))
		p.bars[what] = bar
	}
	bar.SetTotal(int64(total), false)
	bar.SetCurrent(int64(done))
	if done >= total {
		bar.SetTotal(int64(total), true)
		delete(p.bars, what)
	}
}

// end removes what is still shown.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, bar := range p.bars {
		bar.Abort(true)
	}
	clear(p.bars)
	if p.all != nil {
		p.all.Wait()
		p.all = nil
	}
}
