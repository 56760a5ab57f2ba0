package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
)

// reloadTime is how long a running node may take to load the owner's files.
const reloadTime = 10 * time.Second

// reloaded has the running node load the owner's files, and waits until it says
// that it has loaded, or refused, what is meant: another reload may be under way
// with what stood there before. errNotRunning if no node runs.
func reloaded(ctx context.Context, h *home.Home, meant func(running) bool) (running, error) {
	ctx, cancel := context.WithTimeout(ctx, reloadTime)
	defer cancel()
	var told running
	for {
		node, err := runningOn(h)
		switch {
		case errors.Is(err, errNotRunning):
			return node, err
		case err != nil:
		case told.PID != node.PID:
			if err = hangUp(h, node); err == nil {
				told = node
			} else if errors.Is(err, errNotRunning) {
				return node, err
			}
		case node.Reloads > told.Reloads && meant(node):
			if node.Refused != "" {
				return node, fmt.Errorf("the running node refuses it, and what was loaded before stays: %s", node.Refused)
			}
			return node, nil
		}
		select {
		case <-ctx.Done():
			return node, fmt.Errorf("the running node has not loaded it in time; see its log: %w", errors.Join(ctx.Err(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// reloadedUsers is reloaded for the table of users; false if no node runs.
func reloadedUsers(ctx context.Context, h *home.Home) (running, bool, error) {
	users, err := h.Users()
	if err != nil {
		return running{}, false, err
	}
	digest := events.DigestOf(users)
	node, err := reloaded(ctx, h, func(r running) bool { return r.UsersSHA256 == digest })
	if errors.Is(err, errNotRunning) {
		return node, false, nil
	}
	return node, err == nil, err
}

// hangUp tells the running node to load its files. Its number is believed only
// when it is that of the process that holds the directory: a number that a dead
// node left behind may be any process by now.
func hangUp(h *home.Home, node running) error {
	err := home.Unlocked(h.Dir())
	switch {
	case err == nil:
		return errNotRunning
	case !errors.Is(err, home.ErrLocked):
		return err
	}
	holder, err := os.ReadFile(filepath.Join(h.Dir(), "lock"))
	if err != nil || strings.TrimSpace(string(holder)) != strconv.Itoa(node.PID) {
		return errors.New("the node is starting")
	}
	if err := syscall.Kill(node.PID, syscall.SIGHUP); err != nil {
		return fmt.Errorf("tell the node to reload: %w", err)
	}
	return nil
}
