package v1beta1

// AwsConfig are IAM credentials for providers that run on EKS.
type AwsConfig struct {
	// awsAccessKeyID is the ID of the access key.
	// +kubebuilder:validation:MaxLength=1024
	AwsAccessKeyID string `json:"awsAccessKeyID"`
	// awsSecretAccessKey is the secret part of the access key.
	// +kubebuilder:validation:MaxLength=1024
	AwsSecretAccessKey string `json:"awsSecretAccessKey"`
	// awsRegion is the region of the cluster.
	// +kubebuilder:validation:MaxLength=1024
	AwsRegion string `json:"awsRegion"`
	// awsClusterName is the name of the cluster.
	// +kubebuilder:validation:MaxLength=1024
	AwsClusterName string `json:"awsClusterName"`
	// awsUserArn is the ARN of the user.
	// +kubebuilder:validation:MaxLength=2048
	AwsUserArn string `json:"awsUserArn"`
}

// AuthParams are what a consumer needs to authenticate with a provider, besides its private key.
type AuthParams struct {
	// ca is the PEM bundle that the provider's API server is verified with; empty if its certificate is publicly trusted.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CA []byte `json:"ca,omitempty"`
	// signedCRT is the consumer's client certificate, PEM.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	SignedCRT []byte `json:"signedCRT,omitempty"`
	// apiServer is the URL of the provider's API server.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self == '' || self.startsWith('https://')",message="apiServer must be an https:// URL"
	APIServer string `json:"apiServer,omitempty"`
	// proxyURL is the proxy through which the API server is reached.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ProxyURL *string `json:"proxyURL,omitempty"`
	// awsConfig replaces the certificate where the provider runs on EKS.
	// +optional
	AwsConfig *AwsConfig `json:"awsConfig,omitempty"`
}
