plugins {
    id("com.android.application")
    id("org.jetbrains.kotlin.android")
}

android {
    namespace = "io.pelton.example"
    compileSdk = 36

    defaultConfig {
        applicationId = "io.pelton.example"
        minSdk = 24
        targetSdk = 36
        versionCode = 1
        versionName = "1"
    }

    buildTypes {
        release {
            // pelton's archive brings the rules that it needs.
            isMinifyEnabled = true
        }
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_11
        targetCompatibility = JavaVersion.VERSION_11
    }
}

dependencies {
    implementation("io.pelton:pelton-android:0.1.0@aar")
    // Its classes are those of the archive.
    implementation("io.pelton:pelton-kotlin:0.1.0") {
        exclude(group = "io.pelton", module = "pelton")
    }
    implementation("androidx.work:work-runtime:2.10.0")
    implementation("org.jetbrains.kotlinx:kotlinx-coroutines-android:1.11.0")
}
