package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/authentication/slicegrant"
)

// sharesPeriod is how often it is looked for other percentages. A kubelet takes up to a minute or two to write them.
const sharesPeriod = 5 * time.Second

// shared is how much the configuration has consumers be offered.
func shared(config *v1alpha1.ControllerManager) slicegrant.Percentages {
	return slicegrant.Percentages{All: config.Offloading.SharingPercentage, Classes: config.Offloading.SharingPercentages}
}

// followShares has the percentages hold that the configuration file says now, which is the chart's ConfigMap as it is mounted. All else of it
// holds from the next start, which the chart sees to.
func followShares(mgr ctrl.Manager, file string, shares *slicegrant.Shares) error {
	refused, log := "", mgr.GetLogger().WithName("shares")
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		wait.UntilWithContext(ctx, func(context.Context) { refused = lookForShares(log, file, shares, refused) }, sharesPeriod)
		return nil
	}))
	if err != nil {
		return fmt.Errorf("following how much is offered: %w", err)
	}
	return nil
}

// lookForShares looks once, and returns why the file was refused, which is said once.
func lookForShares(log logr.Logger, file string, shares *slicegrant.Shares, before string) (refused string) {
	config, err := v1alpha1.Load(file)
	if err != nil {
		if refused = err.Error(); refused != before {
			log.Error(err, "The configuration has changed and is refused: consumers are offered as much as before")
		}
		return refused
	}
	if now := shared(config); shares.Set(now) {
		log.Info("Consumers are offered other shares of what is free", "percentage", now.All, "classes", now.Classes)
	}
	return ""
}
