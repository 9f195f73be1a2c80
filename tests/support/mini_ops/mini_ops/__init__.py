"""As DeepSpeed's: importing the package does not load its ops."""
