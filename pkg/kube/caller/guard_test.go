package caller_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/fake"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	k8stesting "k8s.io/client-go/testing"

	"liqo.io/liqo/pkg/kube/caller"
	"liqo.io/liqo/test/fakeapi"
)

// apiServer knows the token "good" of user ann, and answers questions about rights as told.
type apiServer struct {
	*fake.Clientset
	answer    authorizationv1.SubjectAccessReviewStatus
	failures  int
	failure   error
	questions []authorizationv1.SubjectAccessReviewSpec
	tokens    int
}

func newAPIServer() *apiServer {
	s := &apiServer{Clientset: fake.NewClientset()}
	fakeapi.React(&s.Fake, "create", "tokenreviews", func(action k8stesting.Action) (bool, runtime.Object, error) {
		s.tokens++
		if s.failures > 0 {
			s.failures--
			return true, nil, s.failure
		}
		review := action.(k8stesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		if review.Spec.Token == "good" {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
				Username: "ann", UID: "1", Groups: []string{"team"}, Extra: map[string]authenticationv1.ExtraValue{"scope": {"a"}},
			}}
		}
		return true, review, nil
	})
	fakeapi.React(&s.Fake, "create", "subjectaccessreviews", func(action k8stesting.Action) (bool, runtime.Object, error) {
		review := action.(k8stesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		s.questions = append(s.questions, review.Spec)
		if s.failures > 0 {
			s.failures--
			return true, nil, s.failure
		}
		review.Status = s.answer
		return true, review, nil
	})
	return s
}

func (s *apiServer) guard() *caller.Guard {
	return caller.New(s.AuthenticationV1(), s.AuthorizationV1(), nil)
}

func withToken(t *testing.T, token string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/pods", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func TestWhoIsKnownByItsToken(t *testing.T) {
	for name, c := range map[string]struct {
		token string
		want  user.Info
	}{
		"no token is nobody's":      {"", nil},
		"a foreign token is not it": {"foreign", nil},
		"the user with its groups": {"good", &user.DefaultInfo{
			Name: "ann", UID: "1", Groups: []string{"team", user.AllAuthenticated}, Extra: map[string][]string{"scope": {"a"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok, _ := newAPIServer().guard().Who(withToken(t, c.token))
			if ok != (c.want != nil) {
				t.Fatalf("known: %t, want %t", ok, c.want != nil)
			}
			if diff := cmp.Diff(c.want, got); ok && diff != "" {
				t.Errorf("who, -want +got:\n%s", diff)
			}
		})
	}
}

func TestAReviewIsTriedAgainOnlyIfItsFailurePasses(t *testing.T) {
	for name, c := range map[string]struct {
		failure error
		known   bool
		tokens  int
	}{
		"the API server is overloaded": {apierrors.NewTooManyRequests("busy", 0), true, 2},
		"reviews are forbidden":        {apierrors.NewForbidden(authenticationv1.Resource("tokenreviews"), "", nil), false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer()
			s.failures, s.failure = 1, c.failure
			_, ok, err := s.guard().Who(withToken(t, "good"))
			if ok != c.known || (err == nil) != c.known || s.tokens != c.tokens {
				t.Errorf("known: %t (%v) after %d tries, want %t after %d", ok, err, s.tokens, c.known, c.tokens)
			}
		})
	}
}

func TestARightIsAskedForOnce(t *testing.T) {
	what := authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes", Subresource: "pods"}}
	who := &user.DefaultInfo{Name: "ann", UID: "1", Groups: []string{"team"}, Extra: map[string][]string{"scope": {"a"}}}
	for name, c := range map[string]struct {
		answer authorizationv1.SubjectAccessReviewStatus
		want   bool
	}{
		"allowed":                    {authorizationv1.SubjectAccessReviewStatus{Allowed: true}, true},
		"without opinion":            {authorizationv1.SubjectAccessReviewStatus{}, false},
		"denied":                     {authorizationv1.SubjectAccessReviewStatus{Denied: true}, false},
		"allowed and denied at once": {authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer()
			s.answer = c.answer
			guard := s.guard()
			for range 2 {
				got, err := guard.May(t.Context(), who, what)
				if err != nil || got != c.want {
					t.Errorf("allowed: %t (%v), want %t", got, err, c.want)
				}
			}
			question := *what.DeepCopy()
			question.User, question.UID, question.Groups = "ann", "1", []string{"team"}
			question.Extra = map[string]authorizationv1.ExtraValue{"scope": {"a"}}
			if diff := cmp.Diff([]authorizationv1.SubjectAccessReviewSpec{question}, s.questions); diff != "" {
				t.Errorf("questions, -want +got:\n%s", diff)
			}
		})
	}
}

func TestARightThatCannotBeAskedForIsNone(t *testing.T) {
	s := newAPIServer()
	s.answer.Allowed, s.failures, s.failure = true, 1, apierrors.NewForbidden(authorizationv1.Resource("subjectaccessreviews"), "", nil)
	guard, who := s.guard(), &user.DefaultInfo{Name: "ann"}
	if got, err := guard.May(t.Context(), who, authorizationv1.SubjectAccessReviewSpec{}); got || err == nil {
		t.Errorf("allowed: %t (%v), want an error", got, err)
	}
	if got, err := guard.May(t.Context(), who, authorizationv1.SubjectAccessReviewSpec{}); !got || err != nil {
		t.Errorf("a failure was remembered: %t (%v)", got, err)
	}
}

// deadlines notes whether questions about rights have a deadline.
type deadlines struct {
	authorizationclient.AuthorizationV1Interface
	authorizationclient.SubjectAccessReviewInterface
	seen []bool
}

func (d *deadlines) SubjectAccessReviews() authorizationclient.SubjectAccessReviewInterface { return d }

func (d *deadlines) Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, o metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	_, has := ctx.Deadline()
	d.seen = append(d.seen, has)
	return d.AuthorizationV1Interface.SubjectAccessReviews().Create(ctx, review, o)
}

func TestAQuestionAboutARightHasADeadline(t *testing.T) {
	s := newAPIServer()
	s.failures, s.failure = 1, apierrors.NewTooManyRequests("busy", 0)
	asked := &deadlines{AuthorizationV1Interface: s.AuthorizationV1()}
	guard := caller.New(s.AuthenticationV1(), asked, nil)
	if _, err := guard.May(context.WithoutCancel(t.Context()), &user.DefaultInfo{Name: "ann"}, authorizationv1.SubjectAccessReviewSpec{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{true, true}, asked.seen); diff != "" {
		t.Errorf("deadlines of the question and its repetition, -want +got:\n%s", diff)
	}
}
