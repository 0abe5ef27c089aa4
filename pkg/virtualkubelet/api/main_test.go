package api

import (
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m,
		// client-go's WebSocket heartbeat notices the end of its connection at its next tick only.
		goleak.IgnoreAnyFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"),
		// spdystream waits forever for the reply to a stream whose connection ends before.
		goleak.IgnoreAnyFunction("github.com/moby/spdystream.(*Stream).waitWriteReply"),
	)
}
