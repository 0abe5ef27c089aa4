package secretledger

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// queue is how many ShadowPods may be woken before their controller takes notice; more look again by themselves, only later.
const queue = 1024

// Tokens tells who makes pods whether the Secrets with their tokens are there, from the watches that the ledgers need anyway. Make it
// with NewTokens.
type Tokens struct {
	woken chan event.GenericEvent

	mu sync.Mutex
	// twins is nil until the controller is registered.
	twins *twins
	// awaited are, by their Secrets, the ShadowPods that found none.
	awaited map[types.NamespacedName]string
}

// NewTokens knows no Secret before it is given to Register.
func NewTokens() *Tokens {
	return &Tokens{woken: make(chan event.GenericEvent, queue), awaited: map[types.NamespacedName]string{}}
}

// Woken are the ShadowPods that Await returned false for and whose Secret came since.
func (t *Tokens) Woken() <-chan event.GenericEvent { return t.woken }

// Await tells whether a ShadowPod, whose volumes need it, has its Secret with tokens. If not, the ShadowPod is woken once it has.
func (t *Tokens) Await(shadow *offloadingv1beta1.ShadowPod) bool {
	secret := types.NamespacedName{Namespace: shadow.Namespace, Name: reflection.TokenSecretOf(shadow)}
	// In this order: what comes in between wakes it.
	t.mu.Lock()
	t.awaited[secret] = shadow.Name
	twins := t.twins
	t.mu.Unlock()
	entry, there := "", false
	if twins != nil {
		entry, there = twins.entry(secret)
	}
	if there && !ofAnotherPod(entry, reflection.OriginUID(shadow)) {
		t.Forget(client.ObjectKeyFromObject(shadow))
		return true
	}
	return false
}

// Consumer is whose a Secret in a twin namespace is; empty if it is nobody's or not known to be there.
func (t *Tokens) Consumer(secret types.NamespacedName) string {
	t.mu.Lock()
	twins := t.twins
	t.mu.Unlock()
	if twins == nil {
		return ""
	}
	return twins.consumer(secret)
}

// Forget ends the wait of a ShadowPod.
func (t *Tokens) Forget(shadow types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range reflection.TokenSecretNames(shadow.Name) {
		delete(t.awaited, types.NamespacedName{Namespace: shadow.Namespace, Name: name})
	}
}

// came wakes the ShadowPod that waits for a Secret. Nobody is kept waiting here.
func (t *Tokens) came(secret types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name, waits := t.awaited[secret]
	if !waits {
		return
	}
	shadow := &offloadingv1beta1.ShadowPod{}
	shadow.Namespace, shadow.Name = secret.Namespace, name
	select {
	case t.woken <- event.GenericEvent{Object: shadow}:
		delete(t.awaited, secret)
	default:
	}
}

// ofAnotherPod tells whether what is known of a Secret shows that it was made for an earlier pod of the name.
func ofAnotherPod(entry, uid string) bool {
	tokens, ok := reflection.ParseTokenEntry(entry)
	return ok && tokens.PodUID != uid
}
