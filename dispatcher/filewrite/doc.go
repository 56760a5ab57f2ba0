// Package filewrite writes one file below a fixed root, whole or not at all, and
// only onto what was expected to be there.
//
//	temporary file ── write, fsync ──▶ lock the directory ── compare ── deadline? ──▶ link (create)
//	in the same directory                                                            rename (replace)
//	                                                                                     │
//	                                                      fsync of the directory ◀───────┘
//
// Invariants:
//
//	W1  No path and no symbolic link leads outside the root (os.Root); links that
//	    stay inside are followed, except for the last element, which must be a
//	    regular file or nothing.
//	W2  Create takes the name only if nothing has it: link(2) is atomic among any
//	    number of creators, and exactly one wins.
//	W3  Replace happens only while the directory is locked (flock) and the SHA-256
//	    of the current content is the expected one. Writers of this package exclude
//	    each other, in one process or several.
//	W4  A reader sees the old file or the new one, never a part.
//	W5  The deadline is read immediately before the link or rename. After it
//	    nothing is cancelled.
//	W6  Written is said only after file and directory were fsynced. NotWritten is
//	    said only when the name provably does not hold what was written here.
//	    Everything between is Lost.
//	W7  What a crash leaves beside the target is named so that [IsLeftover] knows
//	    it; no target may have such a name. A leftover is never part of an effect.
//	W8  Details name the fault, never content.
//
// What remains: a writer that does not take the lock (an editor, a script) can
// change the file between the comparison and the rename, and that change is then
// overwritten unseen. Who may move directories can take the parent out of the
// root while it is open. Replace keeps neither owner, extended attributes nor
// other hard links of the old file. Create needs a file system with hard links.
package filewrite
