module aether.internal/tools/hello

go 1.24
