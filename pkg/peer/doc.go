// Package peer holds one live connection to one other cluster: its credentials, clients and state.
//
// Contract:
//   - The credentials come from a Source, usually one watched Secret. A kubeconfig is hostile input: no programs, no files, no
//     plain http, no unverified TLS are taken from it, and addresses are checked again when they are dialled, after names
//     were resolved. Bad credentials leave the last good ones in place and are reported in the State.
//   - New credentials need no restart: each change counts Epoch up and makes new clients; old ones end with their own calls.
//   - Every call has a deadline, but watches and streams, which end with their context. Redirects are never followed.
//     The bodies of ordinary answers are bounded.
//   - A peer that answers 429 is left alone as long as it asks for, a minute at most, by all that use its clients: requests wait a few
//     seconds, or are answered 429 at once. It counts as connected, with a reason that says so.
//   - "Not connected" is a value, not a time-out: Config and Clients return ErrNotConnected only before the first usable
//     credentials; afterwards State tells whether the peer answers. It is lost after several probes in a row without an
//     answer and regained with the first answer, so that one lost packet changes nothing.
//   - A peer that answers and denies all rights of Options.Rights, twice in a row, has taken them back (State.Revoked); so has one of
//     which somebody else was told so (Tell). A request that it forbids is a reason to ask, not an answer. It stays Connected: what was
//     watched before is still seen to end. The rights are regained with the first answer.
//   - Whom somebody else vouches for (Options.Witness) is probed only when something speaks against it, and every five minutes.
//   - Subscribers are called, one after the other, on each change of Connected, Reason, Epoch or ServerVersion; they must not block.
package peer
