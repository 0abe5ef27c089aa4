// Package gateway is the agent of a gateway: it has the tunnel to one peer carry packets, and tells how it does.
//
// Contract:
//   - It reads what names its own peer by label, in its own namespace, and besides that InternalNodes, InternalFabrics and IPs. As long as
//     something is missing, or may not be read yet, what is in the kernel stays.
//   - The other end is asked through the tunnel every two seconds; five questions without an answer are an Error. Only the other end's own address
//     is answered, and not more often than somebody who asks needs.
//   - A client whose server is silent resolves its names anew, tries the next of its addresses, and begins another session.
//   - With each question the other end is told which clusters it reaches through this one. What it tells is bounded, written to the Connection
//     where the Configuration has transit, and not more often than twice a minute; others judge it.
//   - It makes its Connection, and writes it only when there is something new. A gateway that starts again takes the last word over until it
//     knows better. The controller manager takes back the word of one that has no ready pod; who lives after all says it again.
//   - Of several pods of a gateway, as while a version is rolled out, the one that its object names has the tunnel; another stands by, is ready, and
//     neither asks nor tells anything.
//   - Nothing is removed when it ends.
package gateway
